import uPlot from 'uplot'
import { amount } from './figures.js'

const HEIGHT = 170
const AXIS_FONT = '11px system-ui, sans-serif'
/** Two minutes of seconds. */
const LENGTH = 120

/** Decisions per second over the last two minutes: allowed as an area, denied as a dashed line. */
export class Chart {
  readonly #place: HTMLElement
  readonly #data: { atS: number[]; allowed: number[]; denied: number[] } = { atS: [], allowed: [], denied: [] }
  #plot: uPlot

  constructor(place: HTMLElement) {
    this.#place = place
    this.#plot = this.#draw()
    new ResizeObserver(() => this.#plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place)
    // A canvas does not use the style sheet: its colours are read again when they change.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#plot.destroy()
      this.#plot = this.#draw()
    })
  }

  restart(atS: readonly number[], allowed: readonly number[], denied: readonly number[]): void {
    Object.assign(this.#data, { atS: [...atS], allowed: [...allowed], denied: [...denied] })
    this.#show()
  }

  add(atS: number, allowed: number, denied: number): void {
    const { atS: times, allowed: allows, denied: denials } = this.#data
    times.push(atS)
    allows.push(allowed)
    denials.push(denied)
    for (const column of [times, allows, denials]) column.splice(0, column.length - LENGTH)
    this.#show()
  }

  #show(): void {
    this.#plot.setData(this.#columns())
  }

  #columns(): uPlot.AlignedData {
    return [this.#data.atS, this.#data.allowed, this.#data.denied]
  }

  #draw(): uPlot {
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: colour('quiet'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false },
      font: AXIS_FONT,
    }
    const line = { width: 2, points: { show: false }, spanGaps: false }
    const options: uPlot.Options = {
      width: Math.max(1, this.#place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      // The last label of time may stand under the right edge, half of it beyond.
      padding: [8, Math.ceil(widthOf(clockTime(0)) / 2), 0, 0],
      scales: { x: { time: true, range: lastMinutes }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
      axes: [
        { ...axis, size: 26, gap: 7, space: 80, values: (_, ticks) => ticks.map(clockTime) },
        { ...axis, size: 46, space: 34, values: (_, ticks) => ticks.map(amount) },
      ],
      series: [
        {},
        { ...line, label: 'allowed', stroke: colour('allowed'), fill: colour('allowed-fill') },
        { ...line, label: 'denied', stroke: colour('denied'), dash: [6, 4] },
      ],
    }
    return new uPlot(options, this.#columns(), this.#place)
  }
}

/** Always the same width of time, so that the line moves and never stretches. */
function lastMinutes(_: uPlot, __: number, max: number | null): [number, number] {
  const end = max ?? Date.now() / 1000
  return [end - LENGTH, end]
}

// With `hour12: false` midnight is 24:00:00 in some languages.
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })

function clockTime(atS: number): string {
  return clock.format(atS * 1000)
}

function widthOf(label: string): number {
  const context = document.createElement('canvas').getContext('2d')
  if (context === null) return 0
  context.font = AXIS_FONT
  return context.measureText(label).width
}
