import type { Percentiles } from '../sample.js'
import { Chart, type Drawing } from './chart.js'
import { byId } from './element.js'
import { time } from './figures.js'

const NAMES = ['p50', 'p90', 'p99', 'p999'] as const
const DRAWING: Drawing = {
  lines: [
    { label: 'p50', colour: 'p50' },
    { label: 'p90', colour: 'p90', dash: [8, 3] },
    { label: 'p99', colour: 'p99' },
    { label: 'p99.9', colour: 'p999', dash: [3, 3] },
  ],
  tick: time,
  isLog: true,
}

/** How long decisions took, as percentiles over the last two minutes. */
export class LatencyCard {
  readonly #place = byId('latency-chart')
  readonly #chart = new Chart(this.#place, DRAWING)

  restart(atS: readonly number[], latency: readonly (Percentiles | null)[]): void {
    this.#chart.restart(
      atS,
      NAMES.map((name) => latency.map((each) => each?.[name] ?? null)),
    )
  }

  show(atS: number, latency: Percentiles | undefined): void {
    this.#chart.add(
      atS,
      NAMES.map((name) => latency?.[name] ?? null),
    )
    if (latency === undefined) return
    for (const name of NAMES) byId(`latency-${name}`).textContent = time(latency[name])
    this.#place.ariaLabel = `Last two minutes of the time of a decision: now ${time(latency.p50)} in the median, ${time(latency.p999)} at 99.9 percent`
  }
}
