// Light, dark or high contrast: as the system says, or as chosen here and remembered.
export const THEMES = ["auto", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

class ThemeChoice {
  current: Theme = $state(read());

  set(theme: Theme): void {
    this.current = theme;
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("wakelog.theme", theme);
    } catch {
      // not remembered, then
    }
  }

  next(): void {
    this.set(THEMES[(THEMES.indexOf(this.current) + 1) % THEMES.length] ?? "auto");
  }
}

function read(): Theme {
  try {
    const kept = localStorage.getItem("wakelog.theme") as Theme | null;
    return kept && THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

export const theme = new ThemeChoice();
document.documentElement.dataset.theme = theme.current;
