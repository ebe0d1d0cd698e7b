import { requireRival } from './rivals.js'

/** A line of a chart: its points, each with the quartiles around it. */
export interface Line {
  readonly name: string
  readonly color: string
  readonly points: readonly { readonly x: string; readonly y: number; readonly low: number; readonly high: number }[]
}

export interface Chart {
  readonly title: string
  readonly subtitle: string
  readonly xName: string
  readonly yName: string
  readonly yScale: 'log' | 'value'
  readonly lines: readonly Line[]
}

interface Echarts {
  init(dom: null, theme: null, options: object): { setOption(option: object): void; renderToSVGString(): string; dispose(): void }
}

/** The pen of an error bar, as the drawing library passes it. */
interface Pen {
  value(dimension: number): number
  coord(point: readonly number[]): [number, number]
}

const SIZE = { width: 820, height: 460 }
const FONT = 'ui-sans-serif, system-ui, sans-serif'
/** Colours that are swapped for their dark twins where the reader's page is dark. */
const INK = '#3d444d'
const GRID = '#d0d7de'
const DARK = `@media (prefers-color-scheme: dark) { [fill="${INK}"] { fill: #c9d1d9 } [stroke="${GRID}"] { stroke: #3d444d } [stroke="${INK}"] { stroke: #8b949e } }`

/** A chart as SVG without a background of its own, readable on light and on dark pages. */
export function chartSvg(chart: Chart): string {
  const { init } = requireRival('echarts') as Echarts
  const canvas = init(null, null, { renderer: 'svg', ssr: true, ...SIZE })
  canvas.setOption(optionFor(chart))
  const svg = canvas.renderToSVGString()
  canvas.dispose()
  return `${svg.replace(/(<svg[^>]*>)/, `$1<title>${chart.title}</title><style>${DARK}</style>`)}\n`
}

function optionFor({ title, subtitle, xName, yName, yScale, lines }: Chart): object {
  const text = { color: INK, fontFamily: FONT, fontSize: 12 }
  const axis = { nameTextStyle: text, axisLabel: text, axisLine: { lineStyle: { color: INK } }, axisTick: { lineStyle: { color: INK } } }
  const labels = lines[0]?.points.map(({ x }) => x) ?? []
  return {
    animation: false,
    backgroundColor: 'transparent',
    title: { text: title, subtext: subtitle, left: 8, textStyle: { ...text, fontSize: 15 }, subtextStyle: text },
    legend: { bottom: 4, textStyle: text, icon: 'roundRect', itemWidth: 18, itemHeight: 4, itemGap: 36 },
    grid: { left: 70, right: 40, top: 78, bottom: 78 },
    xAxis: { type: 'category', name: xName, nameLocation: 'middle', nameGap: 28, data: labels, boundaryGap: yScale === 'value', ...axis },
    yAxis: { type: yScale, name: yName, nameLocation: 'middle', nameGap: 48, splitLine: { lineStyle: { color: GRID } }, ...axis },
    series: [...lines.map(lineSeries), ...lines.map(errorSeries)],
  }
}

function lineSeries({ name, color, points }: Line): object {
  const data = points.map(({ y }) => y)
  return { type: 'line', name, data, color, symbol: 'circle', symbolSize: 7, lineStyle: { width: 2, color }, itemStyle: { color } }
}

/** Vertical bars from the lower to the upper quartile. */
function errorSeries({ color, points }: Line): object {
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
