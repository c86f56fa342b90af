export const VIEWS = ["reader", "compact", "waterfall", "json"] as const;
export type ViewName = (typeof VIEWS)[number];
