/** Text within an SVG file. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Positions in a plot: a tenth of a pixel is enough. */
export function round(value: number): number {
  return Math.round(value * 10) / 10
}

interface SvgFrame {
  readonly title: string
  readonly subtitle: string
  readonly width: number
  readonly height: number
  /** Where the titles begin. */
  readonly left: number
  readonly fontSize: number
}

/** A drawing as one SVG file, its title with a line below it. */
export function svgFile({ title, subtitle, width, height, left, fontSize }: SvgFrame, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="${fontSize}" fill="#374151" role="img">
<title>${escaped(title)}</title>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${left}" y="${2 * fontSize}" font-size="16" font-weight="600">${escaped(title)}</text>
<text x="${left}" y="${2 * fontSize + 19}" fill="#6b7280">${escaped(subtitle)}</text>
${parts.join('\n')}
</svg>
`
}
