import type uPlot from 'uplot'
import { fromZero, LinePlot, type PlotStyle } from '../../page/line-plot.js'
import type { ReportPlot } from '../report.js'

const HEIGHT = 280
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 2 })

/** Draws one plot of a report. */
export function drawPlot(place: HTMLElement, title: string, plot: ReportPlot): void {
  const data = [plot.xs, ...plot.series.map(({ ys }) => ys)] as uPlot.AlignedData
  new LinePlot(place, HEIGHT, (style) => optionsOf(plot, title, style), data)
}

function optionsOf(data: ReportPlot, title: string, { colour, axis, font }: PlotStyle): Omit<uPlot.Options, 'width' | 'height'> {
  const { x, xLabel, yLabel, xs, series, marks = [], logX = false, logY = false } = data
  const numbers = (_: uPlot, ticks: (number | null)[]): string[] => ticks.map((tick) => (tick === null ? '' : short.format(tick)))
  return {
    scales: {
      x: { time: x === 'time', ...(logX && { distr: 3 as const }) },
      y: { ...(logY ? { distr: 3 as const } : { range: fromZero }) },
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
    hooks: {
      init: [
        ({ root }) => {
          root.setAttribute('role', 'img')
          root.setAttribute('aria-label', `${title}: ${yLabel} over ${xLabel}`)
        },
      ],
      drawClear: [(plot) => drawMarks(plot, marks, { font, fill: colour('mark'), text: colour('quiet') })],
    },
  }
}

function drawMarks(
  plot: uPlot,
  marks: NonNullable<ReportPlot['marks']>,
  { font, fill, text }: Readonly<Record<'font' | 'fill' | 'text', string>>,
): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.font = font
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
