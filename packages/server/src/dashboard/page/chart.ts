import { fromZero, LinePlot, type PlotStyle } from 'sluicegate-commands/page/line-plot.js'
import type uPlot from 'uplot'

const HEIGHT = 170
/** Two minutes of seconds. */
const LENGTH = 120

/** One line of a chart; `colour` names a variable of the style sheet. */
export interface Line {
  readonly label: string
  readonly colour: string
  readonly fill?: string
  readonly dash?: number[]
}

/** What a chart draws. */
export interface Drawing {
  readonly lines: readonly Line[]
  readonly tick: (value: number) => string
  /** Whether the axis of values is in powers of ten. */
  readonly isLog?: boolean
}

/** Figures over the last two minutes. */
export class Chart {
  readonly #plot: LinePlot
  #atS: number[] = []
  #columns: (number | null)[][]

  constructor(place: HTMLElement, drawing: Drawing) {
    this.#columns = drawing.lines.map(() => [])
    this.#plot = new LinePlot(place, HEIGHT, (style) => optionsOf(drawing, style), this.#data())
  }

  /** `columns`: the values of each line. */
  restart(atS: readonly number[], columns: readonly (readonly (number | null)[])[]): void {
    this.#atS = [...atS]
    this.#columns = columns.map((column) => [...column])
    this.#plot.show(this.#data())
  }

  /** One value of each line; null: none at that time. */
  add(atS: number, values: readonly (number | null)[]): void {
    this.#atS.push(atS)
    for (const [i, value] of values.entries()) this.#columns[i]?.push(value)
    for (const column of [this.#atS, ...this.#columns]) column.splice(0, column.length - LENGTH)
    this.#plot.show(this.#data())
  }

  #data(): uPlot.AlignedData {
    return [this.#atS, ...this.#columns] as uPlot.AlignedData
  }
}

function optionsOf({ lines, tick, isLog = false }: Drawing, { colour, axis, font }: PlotStyle): Omit<uPlot.Options, 'width' | 'height'> {
  const line = { width: 2, points: { show: false }, spanGaps: false }
  return {
    legend: { show: false },
    cursor: { show: false },
    // The last label of time may stand under the right edge, half of it beyond.
    padding: [8, Math.ceil(widthOf(clockTime(0), font) / 2), 0, 0],
    scales: {
      x: { time: true, range: lastMinutes },
      y: isLog ? { distr: 3, range: (_, min, max) => powersAround(min, max) } : { range: fromZero },
    },
    axes: [
      { ...axis, size: 26, gap: 7, space: 80, values: (_, ticks) => ticks.map(clockTime) },
      {
        ...axis,
        ...(isLog && { splits: (_, __, min, max) => powersBetween(min, max) }),
        size: 46,
        space: 34,
        values: (_, ticks) => ticks.map((value) => (value === null ? '' : tick(value))),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour: name, fill, dash }) => ({
        ...line,
        label,
        stroke: colour(name),
        ...(fill !== undefined && { fill: colour(fill) }),
        ...(dash !== undefined && { dash }),
      })),
    ],
  }
}

/** Always the same width of time, so that the line moves and never stretches. */
function lastMinutes(_: uPlot, __: number, max: number | null): [number, number] {
  const end = max ?? Date.now() / 1000
  return [end - LENGTH, end]
}

/** A line of the grid for each power of ten. */
function powersBetween(min: number, max: number): number[] {
  const first = Math.round(Math.log10(min))
  return Array.from({ length: Math.round(Math.log10(max)) - first + 1 }, (_, i) => 10 ** (first + i))
}

/** Whole powers of ten around the values, two of them at least. */
function powersAround(min: number | null, max: number | null): [number, number] {
  const from = Math.floor(Math.log10(Math.max(0.01, min ?? 1)))
  return [10 ** from, 10 ** Math.max(from + 2, Math.ceil(Math.log10(Math.max(0.01, max ?? 10))))]
}

// With `hour12: false` midnight is 24:00:00 in some languages.
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })

function clockTime(atS: number): string {
  return clock.format(atS * 1000)
}

function widthOf(label: string, font: string): number {
  const context = document.createElement('canvas').getContext('2d')
  if (context === null) return 0
  context.font = font
  return context.measureText(label).width
}
