import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { SavedOcean, SavedOceans } from './ocean-page.js'

const RESULTS = new URL('../../results/', import.meta.url)

/** The results that are committed. */
export function savedOceans(): SavedOceans {
  const read = (name: string): SavedOcean | undefined => {
    const file = new URL(name, RESULTS)
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as SavedOcean) : undefined
  }
  const [ocean, oceanSoak] = [read('ocean.json'), read('ocean-soak.json')]
  return { ...(ocean && { ocean }), ...(oceanSoak && { oceanSoak }) }
}

/** Saves a run, a scenario a line; of a soak without its plots. */
export function saveOcean({ results, ...setting }: SavedOcean): void {
  mkdirSync(RESULTS, { recursive: true })
  const isSoak = setting.minutes !== undefined
  const lines = results.map((each) => ` ${JSON.stringify(isSoak ? { ...each, plot: undefined, marks: [] } : each)}`)
  const text = `${JSON.stringify(setting).slice(0, -1)},"results":[\n${lines.join(',\n')}\n]}\n`
  writeFileSync(new URL(isSoak ? 'ocean-soak.json' : 'ocean.json', RESULTS), text)
}
