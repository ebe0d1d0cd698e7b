import uPlot from 'uplot'

const AXIS_FONT = '11px system-ui, sans-serif'

/** What a plot takes from the style sheet and the screen. A canvas has no style sheet, so colours are read when it is drawn. */
export interface PlotStyle {
  /** The value of a variable of the style sheet. */
  colour(name: string): string
  /** Of every axis. */
  readonly axis: Pick<uPlot.Axis, 'stroke' | 'grid' | 'ticks' | 'font' | 'labelFont'>
  readonly font: string
}

export type PlotOptions = (style: PlotStyle) => Omit<uPlot.Options, 'width' | 'height'>

/** A plot of lines, as wide as its place, in the colours of the reader's theme. */
export class LinePlot {
  readonly #place: HTMLElement
  readonly #height: number
  readonly #options: PlotOptions
  #data: uPlot.AlignedData
  #plot: uPlot

  constructor(place: HTMLElement, height: number, options: PlotOptions, data: uPlot.AlignedData) {
    this.#place = place
    this.#height = height
    this.#options = options
    this.#data = data
    this.#plot = this.#drawn()
    new ResizeObserver(() => this.#plot.setSize({ width: place.clientWidth, height })).observe(place)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#plot.destroy()
      this.#plot = this.#drawn()
    })
  }

  /** Draws other data in place of these. */
  show(data: uPlot.AlignedData): void {
    this.#data = data
    this.#plot.setData(data)
  }

  #drawn(): uPlot {
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
    const axis = {
      stroke: colour('quiet'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false },
      font: AXIS_FONT,
      labelFont: AXIS_FONT,
    }
    const size = { width: Math.max(1, this.#place.clientWidth), height: this.#height }
    return new uPlot({ ...size, ...this.#options({ colour, axis, font: AXIS_FONT }) }, this.#data, this.#place)
  }
}

/** From zero to a tenth above the largest value. */
export function fromZero(_: uPlot, __: number, max: number): [number, number] {
  return [0, Math.max(1, max * 1.1)]
}
