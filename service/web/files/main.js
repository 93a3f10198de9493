// Shows the view that the address names, and keeps it alive.

import { Compare } from "./compare.js";
import { byId, fill, h } from "./dom.js";
import { Executors } from "./executors.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { Live } from "./live.js";
import { empty } from "./parts.js";
import { route } from "./route.js";

/** @type {{live: Live, view: Jobs | Job | Compare | Executors, key: string} | null} */
let shown = null;

function show() {
  const now = route();
  for (const [id, views] of /** @type {[string, string[]][]} */ ([["nav-jobs", ["jobs", "job", "compare"]], ["nav-executors", ["executors"]]])) {
    if (views.includes(now.view)) byId(id).setAttribute("aria-current", "page");
    else byId(id).removeAttribute("aria-current");
  }
  const key = `${now.view} ${now.job ?? ""} ${now.with ?? ""}`;
  if (shown?.key === key) {
    // Another tab or drawer of the job that is shown.
    if (shown.view instanceof Job) {
      shown.view.go(now);
      shown.live.now();
    }
    return;
  }
  shown?.live.stop();
  shown = null;
  byId("alarm").hidden = true;
  const place = byId("view");
  if (now.view === "nowhere") {
    document.title = "Streamgauge";
    fill(place, empty("There is nothing at this address", h("p", {}, "Go to ", h("a", { href: "#/" }, "all jobs"), ".")));
    return;
  }
  const view = now.view === "executors" ? new Executors() : now.view === "job" ? new Job(now) : now.view === "compare" ? new Compare(now) : new Jobs();
  fill(place, view.element);
  shown = { live: new Live(view), view, key };
  scrollTo(0, 0);
}

// Its own address would be none of the page's.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  byId("view").focus();
});
addEventListener("hashchange", show);
show();
