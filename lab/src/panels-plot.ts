import { escaped, round, svgFile } from './line-plot.js'

const [PANEL_WIDTH, PANEL_HEIGHT] = [268, 150]
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 10, 26, 22]
const HEAD = 58
const FOOT = 34
const COLUMNS = 3
const [ADMITTED, BUDGET, FAULT] = ['#2563eb', '#6b7280', '#fecaca']
const PARTS = ['#d97706', '#059669', '#9333ea']

/** One of many small plots: a rate over seconds, with faults marked. */
export interface Panel {
  readonly title: string
  readonly xs: readonly number[]
  readonly ys: readonly number[]
  /** What `ys` is the sum of. */
  readonly parts?: readonly (readonly number[])[]
  /** Drawn as a dashed line; null where there is none. */
  readonly budget: number | null
  readonly faults: readonly { readonly fromX: number; readonly toX: number }[]
}

/** Small plots side by side as one SVG file, each with its own axes. */
export function panelsSvg(title: string, subtitle: string, panels: readonly Panel[]): string {
  const rows = Math.ceil(panels.length / COLUMNS)
  const [width, height] = [COLUMNS * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT + FOOT]
  const drawn = panels.map((panel, i) => {
    const at = `translate(${(i % COLUMNS) * PANEL_WIDTH} ${HEAD + Math.floor(i / COLUMNS) * PANEL_HEIGHT})`
    return `<g transform="${at}">\n${panelText(panel)}\n</g>`
  })
  const legend = [
    `<rect x="${LEFT}" y="${height - 20}" width="18" height="4" fill="${ADMITTED}"/><text x="${LEFT + 24}" y="${height - 14}">admitted per second</text>`,
    `<line x1="${LEFT + 170}" y1="${height - 18}" x2="${LEFT + 188}" y2="${height - 18}" stroke="${BUDGET}" stroke-width="2" stroke-dasharray="5 3"/><text x="${LEFT + 194}" y="${height - 14}">budget</text>`,
    `<rect x="${LEFT + 260}" y="${height - 25}" width="18" height="12" fill="${FAULT}"/><text x="${LEFT + 284}" y="${height - 14}">fault</text>`,
    `<text x="${width - RIGHT}" y="${height - 14}" text-anchor="end">seconds from the start</text>`,
  ]
  return svgFile({ title, subtitle, width, height, left: LEFT, fontSize: 11 }, [...drawn, ...legend])
}

function panelText({ title, xs, ys, parts = [], budget, faults }: Panel): string {
  const lastX = Math.max(1, ...xs)
  const lastY = roundUp(Math.max(1, ...ys, budget ?? 0))
  const x = (value: number): number => round(LEFT + (Math.min(value, lastX) / lastX) * (PANEL_WIDTH - LEFT - RIGHT))
  const y = (value: number): number => round(PANEL_HEIGHT - BOTTOM - (value / lastY) * (PANEL_HEIGHT - TOP - BOTTOM))
  const marks = faults.map(
    ({ fromX, toX }) =>
      `<rect x="${x(fromX)}" y="${TOP}" width="${round(Math.max(1, x(toX) - x(fromX)))}" height="${PANEL_HEIGHT - TOP - BOTTOM}" fill="${FAULT}"/>`,
  )
  const axis = [0, lastY].map(
    (value) =>
      `<line x1="${LEFT}" y1="${y(value)}" x2="${PANEL_WIDTH - RIGHT}" y2="${y(value)}" stroke="#e5e7eb"/><text x="${LEFT - 5}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  )
  const seconds = `<text x="${PANEL_WIDTH - RIGHT}" y="${PANEL_HEIGHT - BOTTOM + 14}" text-anchor="end">${Math.round(lastX)}</text>`
  const lineOf = (values: readonly number[], color: string, width: number): string =>
    `<polyline points="${values.map((value, i) => `${x(xs[i] as number)},${y(value)}`).join(' ')}" fill="none" stroke="${color}" stroke-width="${width}"/>`
  const lines = [...parts.map((part, i) => lineOf(part, PARTS[i % PARTS.length] as string, 0.8)), lineOf(ys, ADMITTED, 1.3)]
  const limit =
    budget === null
      ? []
      : [
          `<line x1="${LEFT}" y1="${y(budget)}" x2="${PANEL_WIDTH - RIGHT}" y2="${y(budget)}" stroke="${BUDGET}" stroke-width="1.3" stroke-dasharray="5 3"/>`,
        ]
  return [`<text x="${LEFT}" y="17" font-weight="600">${escaped(title)}</text>`, ...marks, ...axis, seconds, ...lines, ...limit].join('\n')
}

/** To the next number with one digit that is not zero. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return Math.ceil(value / power) * power
}
