export const TABS = ["State", "Diff", "Context", "Files", "Why", "Cost", "Raw"] as const;
export type TabName = (typeof TABS)[number];

export function tabNamed(word: string): TabName | undefined {
  return TABS.find((tab) => tab.toLowerCase() === word.toLowerCase());
}
