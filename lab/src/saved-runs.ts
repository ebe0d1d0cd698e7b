import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { filledLabPage, labPlots, type SavedLab, type SavedRuns, type SavedSoak } from './lab-page.js'
import { savedOceans } from './ocean/ocean-runs.js'

const RESULTS = new URL('../results/', import.meta.url)
const PAGE = new URL('../../docs/lab.md', import.meta.url)
const PLOTS = new URL('../../docs/plots/', import.meta.url)

/** The results that are committed. */
export function savedRuns(): SavedRuns {
  const read = <T>(name: string): T | undefined => {
    const file = new URL(`${name}.json`, RESULTS)
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined
  }
  const [lab, soak] = [read<SavedLab>('lab'), read<SavedSoak>('soak')]
  return { ...(lab && { lab }), ...(soak && { soak }), ...savedOceans() }
}

/** Saves a run as a file of results, a scenario a line. */
export function saveRun(name: 'lab' | 'soak', { results, ...setting }: SavedLab | SavedSoak): void {
  mkdirSync(RESULTS, { recursive: true })
  const head = JSON.stringify(setting).slice(0, -1)
  const lines = results.map((each) => ` ${JSON.stringify(each)}`).join(',\n')
  writeFileSync(new URL(`${name}.json`, RESULTS), `${head},"results":[\n${lines}\n]}\n`)
}

/** Writes tables and plots of docs/lab.md from the results that are committed. */
export function publishRuns(): void {
  const runs = savedRuns()
  writeFileSync(PAGE, filledLabPage(readFileSync(PAGE, 'utf8'), runs))
  for (const [name, svg] of labPlots(runs)) writeFileSync(new URL(name, PLOTS), svg)
}
