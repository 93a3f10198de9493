// The two libraries that index.html loads before the page's own modules, which find them as globals.
/// <reference types="dagre" />
/// <reference types="uplot" />
