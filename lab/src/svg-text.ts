/** Text within an SVG file. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Positions in a plot: a tenth of a pixel is enough. */
export function round(value: number): number {
  return Math.round(value * 10) / 10
}
