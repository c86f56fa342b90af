// What a reader set on this machine, remembered by the browser.
export function remembered<T extends object>(name: string, first: T): { value: T } {
  let kept: Partial<T> = {};
  try {
    kept = JSON.parse(localStorage.getItem(`wakelog.${name}`) ?? "{}") as Partial<T>;
  } catch {
    // as at first, then
  }
  const box = $state({ value: { ...first, ...kept } });
  $effect(() => {
    const text = JSON.stringify(box.value);
    try {
      localStorage.setItem(`wakelog.${name}`, text);
    } catch {
      // not remembered, then
    }
  });
  return box;
}
