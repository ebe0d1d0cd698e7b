import { AXIS, COLORS, drawnSvg, GRID, heading, INK, TEXT } from '../drawing.js'
import type { SlidingWindowFindings } from './sliding-window.js'

const SIZE = { width: 640, height: 620 }
const BOX = { left: 70, right: 30, top: 78, bottom: 60 }

/** What the approximated sliding window believed over what was real, around a limit. */
export function estimatePlot({ points, plottedLimit }: SlidingWindowFindings): string {
  const most = 2 * plottedLimit
  const title = 'Approximated count over real count'
  const subtitle = `Requests of a source in the minute before; the lines: a limit of ${plottedLimit}`
  const axis = { type: 'value', max: most, nameLocation: 'middle', splitLine: { lineStyle: { color: GRID } }, ...AXIS }
  const line = (coords: [number, number][], width: number): object[] => [
    { coord: coords[0], symbol: 'none', lineStyle: { color: INK, width, type: 'solid' } },
    { coord: coords[1], symbol: 'none' },
  ]
  const label = (left: number, top: number, text: string): object => ({ text, left, top, padding: 0, textStyle: TEXT })
  return drawnSvg(title, SIZE, {
    title: [heading(title, subtitle), label(430, 500, 'wrongly allowed'), label(110, 100, 'wrongly denied')],
    grid: BOX,
    xAxis: { ...axis, name: 'really', nameGap: 28 },
    yAxis: { ...axis, name: 'by the approximation', nameGap: 44 },
    series: [
      {
        type: 'scatter',
        data: points,
        symbolSize: 4,
        itemStyle: { color: COLORS[0], opacity: 0.7 },
        markLine: {
          silent: true,
          label: { show: false },
          data: [
            line(
              [
                [0, 0],
                [most, most],
              ],
              1,
            ),
            line(
              [
                [plottedLimit, 0],
                [plottedLimit, most],
              ],
              1.5,
            ),
            line(
              [
                [0, plottedLimit],
                [most, plottedLimit],
              ],
              1.5,
            ),
          ],
        },
      },
    ],
  })
}
