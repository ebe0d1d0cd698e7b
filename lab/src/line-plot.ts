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

const [WIDTH, HEIGHT] = [820, 420]
const [LEFT, RIGHT, TOP, BOTTOM] = [76, 34, 60, 70]
const COLORS = ['#2563eb', '#d97706', '#059669', '#9333ea', '#6b7280', '#dc2626']
/** Characters of the legend that fit between two names. */
const [LEGEND_GAP, CHARACTER_WIDTH] = [44, 6.4]
const MOST_TICKS = 20

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
  /** Where the axis has the powers of ten; all values are positive. */
  readonly xScale?: 'log'
  readonly yScale?: 'log'
  /** A time to mark. */
  readonly mark?: { readonly fromX: number; readonly toX: number; readonly label: string }
}

/** Curves as one SVG file. */
export function linePlotSvg({ title, subtitle, xName, yName, xs, curves, xScale, yScale, mark }: LinePlot): string {
  const ys = curves.flatMap((curve) => curve.ys)
  const xAxis = xScale === 'log' ? logAxis(xs) : linearAxis(Math.max(1, ...xs), MOST_TICKS)
  const yAxis = yScale === 'log' ? logAxis(ys) : linearAxis(1.1 * largest(ys), 5)
  const x = (value: number): number => round(LEFT + xAxis.shareOf(value) * (WIDTH - LEFT - RIGHT))
  const y = (value: number): number => round(HEIGHT - BOTTOM - yAxis.shareOf(value) * (HEIGHT - TOP - BOTTOM))
  const grid = yAxis.ticks.map(
    (value) =>
      `<line x1="${LEFT}" y1="${y(value)}" x2="${WIDTH - RIGHT}" y2="${y(value)}" stroke="#e5e7eb"/><text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${numberText(value)}</text>`,
  )
  const ticks = xAxis.ticks.map(
    (value) => `<text x="${x(value)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${numberText(value)}</text>`,
  )
  const marked =
    mark === undefined
      ? ''
      : `<rect x="${x(mark.fromX)}" y="${TOP}" width="${round(Math.min(x(mark.toX), WIDTH - RIGHT) - x(mark.fromX))}" height="${HEIGHT - TOP - BOTTOM}" fill="#fee2e2"/><text x="${x(mark.fromX) + 6}" y="${TOP + 16}">${escaped(mark.label)}</text>`
  const drawn = curves.map(({ ys, isDashed }, i) => {
    const points = ys.map((value, at) => `${x(xs[at] as number)},${y(value)}`).join(' ')
    return `<polyline points="${points}" fill="none" stroke="${COLORS[i % COLORS.length]}" stroke-width="2"${isDashed ? ' stroke-dasharray="6 4"' : ''}/>`
  })
  let left = LEFT
  const legend = curves.map(({ name }, i) => {
    const at = round(left)
    left += LEGEND_GAP + name.length * CHARACTER_WIDTH
    return `<rect x="${at}" y="${HEIGHT - 20}" width="18" height="4" fill="${COLORS[i % COLORS.length]}"/><text x="${at + 24}" y="${HEIGHT - 14}">${escaped(name)}</text>`
  })
  const names = [
    `<text x="${WIDTH / 2}" y="${HEIGHT - BOTTOM + 36}" text-anchor="middle">${escaped(xName)}</text>`,
    `<text transform="rotate(-90)" x="${-HEIGHT / 2}" y="16" text-anchor="middle">${escaped(yName)}</text>`,
  ]
  const frame = { title, subtitle, width: WIDTH, height: HEIGHT, left: LEFT, fontSize: 12 }
  return svgFile(frame, [marked, ...grid, ...ticks, ...drawn, ...legend, ...names])
}

interface Axis {
  /** Where a value is, from 0 to 1. */
  shareOf(value: number): number
  readonly ticks: readonly number[]
}

function linearAxis(max: number, steps: number): Axis {
  const step = stepOf(max, steps)
  return { shareOf: (value) => value / max, ticks: Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step) }
}

/** From the power of ten below all values to the one above them. */
function logAxis(values: readonly number[]): Axis {
  const first = Math.floor(Math.log10(Math.min(...values)))
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values))))
  return {
    shareOf: (value) => (Math.log10(value) - first) / (last - first),
    ticks: Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i)),
  }
}

/** A round number, so that the axis has at most so many steps. */
function stepOf(max: number, steps: number): number {
  const power = 10 ** Math.floor(Math.log10(max / steps))
  return power * ([1, 2, 5].find((factor) => factor * power >= max / steps) ?? 10)
}

function largest(values: readonly number[]): number {
  return Math.max(...values) || 1
}

function numberText(value: number): string {
  return (Math.round(value * 1e6) / 1e6).toLocaleString('en')
}
