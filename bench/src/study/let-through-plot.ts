import { AXIS, COLORS, drawnSvg, GRID, heading, INK, TEXT } from '../drawing.js'
import { inWindow, type LetThroughFindings } from './let-through.js'

const PANEL = { top: 90, height: 92, gap: 34, left: 60, right: 30 }
const WIDTH = 820
const STEP_MS = 100

/** One panel a policy: what passed in each tenth of a second, and how much that makes in the window before. */
export function letThroughPlot({ limit, windowMs, lengthMs, askedMs, policies }: LetThroughFindings): string {
  const panels = [
    { name: 'asked', timesMs: askedMs, most: undefined },
    ...policies.map(({ name, admittedMs, mostInAnyWindow }) => ({ name, timesMs: admittedMs, most: mostInAnyWindow })),
  ]
  const seconds = windowMs / 1000
  const title = 'The same requests through each policy'
  const subtitle = `${limit} in ${seconds} s. Bars: passed in 0.1 s. Line: passed in the ${seconds} s before. Windows end at whole ${seconds} s.`
  const top = (nth: number): number => PANEL.top + nth * (PANEL.height + PANEL.gap)
  return drawnSvg(
    title,
    { width: WIDTH, height: top(panels.length) + 20 },
    {
      title: [
        heading(title, subtitle),
        ...panels.map(({ name, most }, nth) => ({
          text: most === undefined ? name : `${name}: at most ${most} in any ${seconds} s`,
          left: PANEL.left,
          top: top(nth) - 22,
          padding: 0,
          textStyle: { ...TEXT, fontWeight: 'bold' },
        })),
      ],
      grid: panels.map((_, nth) => ({ left: PANEL.left, right: PANEL.right, top: top(nth), height: PANEL.height })),
      xAxis: panels.map((_, nth) => ({
        type: 'value',
        gridIndex: nth,
        min: 0,
        max: lengthMs / 1000,
        interval: seconds,
        splitLine: { lineStyle: { color: GRID } },
        ...AXIS,
        axisLabel: { ...TEXT, show: nth === panels.length - 1, formatter: '{value} s' },
      })),
      yAxis: panels.map((_, nth) => ({
        type: 'value',
        gridIndex: nth,
        max: nth === 0 ? undefined : 2 * limit,
        interval: nth === 0 ? 2 * limit : limit,
        splitLine: { lineStyle: { color: GRID } },
        ...AXIS,
      })),
      series: panels.flatMap(({ timesMs, most }, nth) => [
        bars(timesMs, lengthMs, nth, most === undefined ? COLORS[2] : COLORS[0]),
        ...(most === undefined ? [] : [runningCount(timesMs, lengthMs, nth, limit)]),
      ]),
    },
  )
}

/** One line with the area below it: far shorter to write than a bar for each. */
function bars(timesMs: readonly number[], lengthMs: number, panel: number, color: string): object {
  const data = changes(steps(lengthMs), (ms) => timesMs.filter((at) => at >= ms && at < ms + STEP_MS).length)
  return { ...steppedLine(data, panel, color, 1), areaStyle: { color } }
}

function runningCount(timesMs: readonly number[], lengthMs: number, panel: number, limit: number): object {
  return {
    ...steppedLine(
      changes(steps(lengthMs), (ms) => inWindow(timesMs, ms)),
      panel,
      COLORS[3],
      1.5,
    ),
    markLine: {
      silent: true,
      symbol: 'none',
      label: { show: false },
      lineStyle: { color: INK, type: 'dashed', width: 1 },
      data: [{ yAxis: limit }],
    },
  }
}

function steppedLine(data: readonly (readonly [number, number])[], panel: number, color: string, width: number): object {
  return { type: 'line', step: 'end', data, xAxisIndex: panel, yAxisIndex: panel, symbol: 'none', lineStyle: { width, color } }
}

/** Seconds and values, only where the value changes, and the last. */
function changes(timesMs: readonly number[], value: (ms: number) => number): (readonly [number, number])[] {
  const all = timesMs.map((ms) => [ms / 1000, value(ms)] as const)
  return all.filter(([, height], i) => height !== all[i - 1]?.[1] || i === all.length - 1)
}

function steps(lengthMs: number): number[] {
  return Array.from({ length: lengthMs / STEP_MS }, (_, nth) => nth * STEP_MS)
}
