const [WIDTH, HEIGHT] = [820, 420]
const [LEFT, RIGHT, TOP, BOTTOM] = [60, 20, 60, 70]
const COLORS = ['#2563eb', '#d97706', '#059669', '#9333ea', '#6b7280']

/** A curve of a plot; its points belong to the `xs` of the plot. */
export interface Curve {
  readonly name: string
  readonly ys: readonly number[]
  readonly isDashed?: boolean
}

export interface LinePlot {
  readonly title: string
  readonly subtitle: string
  readonly xName: string
  readonly yName: string
  readonly xs: readonly number[]
  readonly curves: readonly Curve[]
  /** A time to mark. */
  readonly mark?: { readonly fromX: number; readonly toX: number; readonly label: string }
}

/** Curves over time as one SVG file. */
export function linePlotSvg({ title, subtitle, xName, yName, xs, curves, mark }: LinePlot): string {
  const maxX = Math.max(1, ...xs)
  const maxY = 1.1 * Math.max(1, ...curves.flatMap(({ ys }) => ys))
  const x = (value: number): number => round(LEFT + (value / maxX) * (WIDTH - LEFT - RIGHT))
  const y = (value: number): number => round(HEIGHT - BOTTOM - (value / maxY) * (HEIGHT - TOP - BOTTOM))
  const step = stepOf(maxY)
  const grid = Array.from({ length: Math.floor(maxY / step) + 1 }, (_, i) => i * step).map(
    (value) =>
      `<line x1="${LEFT}" y1="${y(value)}" x2="${WIDTH - RIGHT}" y2="${y(value)}" stroke="#e5e7eb"/><text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  )
  const ticks = Array.from(
    { length: Math.floor(maxX) + 1 },
    (_, i) => `<text x="${x(i)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${i}</text>`,
  )
  const marked =
    mark === undefined
      ? ''
      : `<rect x="${x(mark.fromX)}" y="${TOP}" width="${round(x(mark.toX) - x(mark.fromX))}" height="${HEIGHT - TOP - BOTTOM}" fill="#fee2e2"/><text x="${x(mark.fromX) + 6}" y="${TOP + 16}">${escaped(mark.label)}</text>`
  const drawn = curves.map(({ ys, isDashed }, i) => {
    const points = ys.map((value, at) => `${x(xs[at] as number)},${y(value)}`).join(' ')
    return `<polyline points="${points}" fill="none" stroke="${COLORS[i % COLORS.length]}" stroke-width="2"${isDashed ? ' stroke-dasharray="6 4"' : ''}/>`
  })
  const legend = curves.map(
    ({ name }, i) =>
      `<rect x="${LEFT + i * 150}" y="${HEIGHT - 20}" width="18" height="4" fill="${COLORS[i % COLORS.length]}"/><text x="${LEFT + i * 150 + 24}" y="${HEIGHT - 14}">${escaped(name)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#374151">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="24" font-size="16" font-weight="600">${escaped(title)}</text>
<text x="${LEFT}" y="43" fill="#6b7280">${escaped(subtitle)}</text>
${[marked, ...grid, ...ticks, ...drawn, ...legend].join('\n')}
<text x="${WIDTH / 2}" y="${HEIGHT - BOTTOM + 36}" text-anchor="middle">${escaped(xName)}</text>
<text transform="rotate(-90)" x="${-HEIGHT / 2}" y="16" text-anchor="middle">${escaped(yName)}</text>
</svg>
`
}

/** A round number, about a fifth of the axis. */
function stepOf(max: number): number {
  const power = 10 ** Math.floor(Math.log10(max / 5))
  return power * ([1, 2, 5].find((factor) => factor * power >= max / 5) ?? 10)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
