import type { Summary } from 'sluicegate-testkit/samples.js'
import type { Machine } from './machine.js'
import { requireRival } from './rivals.js'

interface Echarts {
  init(dom: null, theme: null, options: object): { setOption(option: object): void; renderToSVGString(): string; dispose(): void }
}

const FONT = 'ui-sans-serif, system-ui, sans-serif'
/** Colours that are swapped for their dark twins where the reader's page is dark. */
const INK = '#3d444d'
const GRID = '#d0d7de'
const DARK = `@media (prefers-color-scheme: dark) { [fill="${INK}"] { fill: #c9d1d9 } [stroke="${GRID}"] { stroke: #3d444d } [stroke="${INK}"] { stroke: #8b949e } }`

/** Colours of lines, readable on light and on dark pages. */
const COLORS = ['#2f81f7', '#1b9e8f', '#8b949e', '#d4712a', '#c2437e', '#7c5cc4', '#a08c2c'] as const

function colorOf(i: number): string {
  return COLORS[i % COLORS.length] as string
}

const TEXT = { color: INK, fontFamily: FONT, fontSize: 12 }
const LINE = { lineStyle: { color: INK } }
const AXIS = { nameTextStyle: TEXT, axisLabel: TEXT, axisLine: LINE, axisTick: LINE }

const LEGEND = { bottom: 4, textStyle: TEXT, icon: 'roundRect', itemWidth: 18, itemHeight: 4, itemGap: 36 }

/** What the drawing library makes of its options, as SVG without its own background, readable on light and on dark pages. */
function drawnSvg(title: string, size: { width: number; height: number }, option: object): string {
  const { init } = requireRival('echarts') as Echarts
  const canvas = init(null, null, { renderer: 'svg', ssr: true, ...size })
  canvas.setOption({ animation: false, backgroundColor: 'transparent', ...option })
  const svg = canvas.renderToSVGString()
  canvas.dispose()
  const named = renamed(svg)
  return `${named.replace(/(<svg[^>]*>)/, `$1<title>${title}</title><style>${DARK}</style>`)}\n`
}

/** A title with a line below it. */
function heading(text: string, subtext: string): object {
  return { text, subtext, left: 8, textStyle: { ...TEXT, fontSize: 15 }, subtextStyle: TEXT }
}

/** The library counts classes and clips over all drawings. Counted from 0 in each, the same figures are the same bytes, whatever else is drawn. */
function renamed(svg: string): string {
  const names = new Map<string, string>()
  return svg.replace(/\bzr\d+-c(?:ls-)?\d+/g, (name) => {
    const known = names.get(name) ?? `c${names.size}`
    names.set(name, known)
    return known
  })
}

/** A line of a chart: its points, each with the quartiles around it. */
export interface Line {
  readonly name: string
  readonly points: readonly Point[]
}

interface Point {
  readonly x: string
  readonly y: number
  readonly low: number
  readonly high: number
}

/** The median with its quartiles. @param of what is drawn of a value, such as the same in another unit. */
export function pointOf(x: string, { median, lowerQuartile, upperQuartile }: Summary, of = (value: number): number => value): Point {
  return { x, y: of(median), low: of(lowerQuartile), high: of(upperQuartile) }
}

/** The end of a subtitle: the machine and the day. @param shared who shares the cores. */
export function measuredOn({ cpu, cores, node }: Machine, time: string, shared = ''): string {
  return `${cpu}, ${cores} cores${shared}, Node ${node.split(' ')[0]}, ${time.slice(0, 10)}`
}

export interface Chart {
  readonly title: string
  readonly subtitle: string
  readonly xName: string
  readonly yName: string
  readonly yScale: 'log' | 'value'
  /** Whether the points of a line are things beside each other, not steps of one. */
  readonly hasNoLines?: boolean
  readonly lines: readonly Line[]
}

/** The pen of an error bar, as the drawing library passes it. */
interface Pen {
  value(dimension: number): number
  coord(point: readonly number[]): [number, number]
}

const SIZE = { width: 820, height: 460 }
/** Of the legend. */
const NAMES_A_ROW = 5
const ROW_HEIGHT = 24

/** A chart as SVG. */
export function chartSvg(chart: Chart): string {
  return drawnSvg(chart.title, SIZE, optionFor(chart))
}

function optionFor({ title, subtitle, xName, yName, yScale, hasNoLines = false, lines }: Chart): object {
  const labels = lines[0]?.points.map(({ x }) => x) ?? []
  const furtherRows = Math.ceil(lines.length / NAMES_A_ROW) - 1
  return {
    title: heading(title, subtitle),
    legend: LEGEND,
    grid: { left: 70, right: 40, top: 78, bottom: 78 + furtherRows * ROW_HEIGHT },
    xAxis: { type: 'category', name: xName, nameLocation: 'middle', nameGap: 28, data: labels, boundaryGap: yScale === 'value', ...AXIS },
    yAxis: { type: yScale, name: yName, nameLocation: 'middle', nameGap: 48, splitLine: { lineStyle: { color: GRID } }, ...AXIS },
    series: [
      ...lines.map((line, i) => lineSeries(line, colorOf(i), hasNoLines ? 0 : 2)),
      ...lines.map((line, i) => errorSeries(line, colorOf(i))),
    ],
  }
}

function lineSeries({ name, points }: Line, color: string, width: number): object {
  const data = points.map(({ y }) => y)
  return { type: 'line', name, data, color, symbol: 'circle', symbolSize: 7, lineStyle: { width, color }, itemStyle: { color } }
}

/** Vertical bars from the lower to the upper quartile. */
function errorSeries({ points }: Line, color: string): object {
  const renderItem = (_: unknown, pen: Pen): object => {
    const [x, top] = pen.coord([pen.value(0), pen.value(2)])
    const [, bottom] = pen.coord([pen.value(0), pen.value(1)])
    return { type: 'line', shape: { x1: x, y1: top, x2: x, y2: bottom }, style: { stroke: color, lineWidth: 1.5 } }
  }
  return {
    type: 'custom',
    renderItem,
    encode: { x: 0, y: [1, 2] },
    data: points.map(({ low, high }, index) => [index, low, high]),
    silent: true,
  }
}

/** A part of the time in which something fails. */
interface Mark {
  readonly fromX: number
  readonly toX: number
  readonly label: string
}

/** Curves over time; their points belong to `xs`. */
export interface OverTime {
  readonly title: string
  readonly subtitle: string
  readonly xName: string
  readonly yName: string
  readonly xs: readonly number[]
  readonly curves: readonly { readonly name: string; readonly ys: readonly number[]; readonly isDashed?: boolean }[]
  readonly marks?: readonly Mark[]
}

/** Curves as SVG. */
export function overTimeSvg({ title, subtitle, xName, yName, xs, curves, marks = [] }: OverTime): string {
  return drawnSvg(title, SIZE, {
    title: heading(title, subtitle),
    legend: LEGEND,
    grid: { left: 70, right: 40, top: 78, bottom: 78 },
    xAxis: { type: 'value', name: xName, nameLocation: 'middle', nameGap: 28, max: xs.at(-1), splitLine: { show: false }, ...AXIS },
    yAxis: { type: 'value', name: yName, nameLocation: 'middle', nameGap: 48, splitLine: { lineStyle: { color: GRID } }, ...AXIS },
    series: curves.map(({ name, ys, isDashed }, i) => ({
      ...curve(xs, ys, colorOf(i), 2, isDashed),
      name,
      ...(i === 0 && { markArea: faults(marks, true) }),
    })),
  })
}

/** One of many small plots: a rate over seconds, with faults marked. */
export interface Panel {
  readonly title: string
  readonly xs: readonly number[]
  readonly ys: readonly number[]
  /** What `ys` is the sum of. */
  readonly parts?: readonly (readonly number[])[]
  /** Drawn as a dashed line; null where there is none. */
  readonly budget: number | null
  readonly marks: readonly Mark[]
}

const PANELS_A_ROW = 3
const [PANEL_WIDTH, PANEL_HEIGHT, PANELS_TOP] = [273, 150, 62]

/** Small plots side by side as SVG, each with its own axes: admitted per second, over seconds, with the budget dashed. */
export function panelsSvg(title: string, subtitle: string, panels: readonly Panel[]): string {
  const at = (i: number): [left: number, top: number] => [
    (i % PANELS_A_ROW) * PANEL_WIDTH,
    PANELS_TOP + Math.floor(i / PANELS_A_ROW) * PANEL_HEIGHT,
  ]
  const small = { ...TEXT, fontSize: 10 }
  const axis = { ...AXIS, axisLabel: small, splitLine: { show: false }, splitNumber: 2 }
  const height = PANELS_TOP + Math.ceil(panels.length / PANELS_A_ROW) * PANEL_HEIGHT
  return drawnSvg(
    title,
    { width: SIZE.width, height },
    {
      title: [
        heading(title, `${subtitle}; dashed: the budget, shaded: faults`),
        ...panels.map((panel, i) => ({
          text: panel.title,
          left: at(i)[0] + 34,
          top: at(i)[1],
          textStyle: { ...TEXT, fontWeight: 'bold' },
        })),
      ],
      grid: panels.map((_, i) => ({ left: at(i)[0] + 38, top: at(i)[1] + 26, width: PANEL_WIDTH - 52, height: PANEL_HEIGHT - 52 })),
      xAxis: panels.map(({ xs }, gridIndex) => ({ type: 'value', gridIndex, max: xs.at(-1), ...axis })),
      yAxis: panels.map((_, gridIndex) => ({ type: 'value', gridIndex, ...axis })),
      series: panels.flatMap(({ xs, ys, parts = [], budget, marks }, i) => {
        const place = { xAxisIndex: i, yAxisIndex: i }
        return [
          ...parts.map((part, of) => ({ ...place, ...curve(xs, part, colorOf(1 + of), 0.8) })),
          { ...place, ...curve(xs, ys, COLORS[0], 1.3), markArea: faults(marks, false) },
          ...(budget === null ? [] : [{ ...place, ...curve([0, xs.at(-1) ?? 0], [budget, budget], INK, 1.3, true) }]),
        ]
      }),
    },
  )
}

function curve(xs: readonly number[], ys: readonly number[], color: string, width: number, isDashed = false): object {
  return {
    type: 'line',
    data: xs.map((x, i) => [x, ys[i]]),
    color,
    showSymbol: false,
    silent: true,
    lineStyle: { width, color, type: isDashed ? 'dashed' : 'solid' },
  }
}

function faults(marks: readonly Mark[], isNamed: boolean): object {
  return {
    silent: true,
    itemStyle: { color: '#f8514933' },
    label: { show: isNamed, position: 'insideTopLeft', ...TEXT },
    data: marks.map(({ fromX, toX, label }) => [{ xAxis: fromX, name: isNamed ? label : '' }, { xAxis: toX }]),
  }
}
