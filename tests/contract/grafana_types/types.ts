// What a dashboard may hold, as Grafana's own frontend has it; made into a JSON Schema.
import type { Dashboard as RawDashboard } from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type * as heatmap from '@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type * as stateTimeline from '@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen';
import type * as table from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import type * as timeSeries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

export interface Dashboard extends RawDashboard {}

// A panel's `options`, and the `custom` part of its fields; a stat has none of the latter.
export interface HeatmapOptions extends heatmap.Options {}
export interface HeatmapField extends heatmap.FieldConfig {}
export interface StatOptions extends stat.Options {}
export interface StateTimelineOptions extends stateTimeline.Options {}
export interface StateTimelineField extends stateTimeline.FieldConfig {}
export interface TableOptions extends table.Options {}
export interface TableField extends table.FieldConfig {}
export interface TimeSeriesOptions extends timeSeries.Options {}
export interface TimeSeriesField extends timeSeries.FieldConfig {}
