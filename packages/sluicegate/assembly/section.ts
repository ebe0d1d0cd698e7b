/** Where this instance's section of the memory begins. */
export let base: usize = 0

export function openSection(address: usize): void {
  base = address
}
