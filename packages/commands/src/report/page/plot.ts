import uPlot from 'uplot'
import type { ReportPlot } from '../report.js'

const HEIGHT = 280
const AXIS_FONT = '11px system-ui, sans-serif'
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 2 })

/** One plot of a report, as wide as its section, in the colours of the reader's theme. */
export class Plot {
  readonly #place: HTMLElement
  readonly #title: string
  readonly #data: ReportPlot
  #plot: uPlot

  constructor(place: HTMLElement, title: string, data: ReportPlot) {
    this.#place = place
    this.#title = title
    this.#data = data
    this.#plot = this.#draw()
    new ResizeObserver(() => this.#plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#plot.destroy()
      this.#plot = this.#draw()
    })
  }

  #draw(): uPlot {
    const { x, xLabel, yLabel, xs, series, marks = [], logX = false, logY = false } = this.#data
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: colour('quiet'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false },
      font: AXIS_FONT,
      labelFont: AXIS_FONT,
    }
    const numbers = (_: uPlot, ticks: (number | null)[]): string[] => ticks.map((tick) => (tick === null ? '' : short.format(tick)))
    const options: uPlot.Options = {
      width: Math.max(1, this.#place.clientWidth),
      height: HEIGHT,
      scales: {
        x: { time: x === 'time', ...(logX && { distr: 3 as const }) },
        y: { ...(logY ? { distr: 3 as const } : { range: (_, __, max) => [0, Math.max(1, max * 1.1)] }) },
      },
      axes: [
        { ...axis, label: xLabel, labelSize: 18, ...(x === 'number' && { values: numbers }) },
        { ...axis, label: yLabel, labelSize: 18, size: 56, values: numbers },
      ],
      series: [
        { label: xLabel },
        ...series.map(({ label, kind = 'line' }, i) => {
          const stroke = colour(`series-${(i % 6) + 1}`)
          return {
            label,
            stroke,
            width: 2,
            points: { show: xs.length < 40 },
            ...(kind === 'area' && { fill: `${stroke}26` }),
            ...(kind === 'dashed' && { dash: [6, 4] }),
          }
        }),
      ],
      hooks: { drawClear: [(plot) => drawMarks(plot, marks, colour('mark'), colour('quiet'))] },
    }
    const plot = new uPlot(options, [xs, ...series.map(({ ys }) => ys)] as uPlot.AlignedData, this.#place)
    plot.root.setAttribute('role', 'img')
    plot.root.setAttribute('aria-label', `${this.#title}: ${yLabel} over ${xLabel}`)
    return plot
  }
}

function drawMarks(plot: uPlot, marks: NonNullable<ReportPlot['marks']>, fill: string, text: string): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.font = AXIS_FONT
  for (const { fromX, toX, label } of marks) {
    const left = plot.valToPos(fromX, 'x', true)
    const right = plot.valToPos(toX, 'x', true)
    ctx.fillStyle = fill
    ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height)
    ctx.fillStyle = text
    ctx.fillText(label, left + 3, bbox.top + 12)
  }
  ctx.restore()
}
