import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { oceanSoakResult, type SavedOcean, type SavedOceanSoak, type SavedOceans } from './ocean-page.js'

const RESULTS = new URL('../../results/', import.meta.url)

/** The results that are committed. */
export function savedOceans(): SavedOceans {
  const read = <Saved>(name: string): Saved | undefined => {
    const file = new URL(name, RESULTS)
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Saved) : undefined
  }
  const [ocean, oceanSoak] = [read<SavedOcean>('ocean.json'), read<SavedOceanSoak>('ocean-soak.json')]
  return { ...(ocean && { ocean }), ...(oceanSoak && { oceanSoak }) }
}

/** Saves a run, a scenario a line. @param minutes of a soak, of which less is kept. */
export function saveOcean({ results, ...setting }: SavedOcean, minutes?: number): void {
  mkdirSync(RESULTS, { recursive: true })
  const head = minutes === undefined ? setting : { ...setting, minutes }
  const lines = results.map((each) => ` ${JSON.stringify(minutes === undefined ? each : oceanSoakResult(each))}`)
  const text = `${JSON.stringify(head).slice(0, -1)},"results":[\n${lines.join(',\n')}\n]}\n`
  writeFileSync(new URL(minutes === undefined ? 'ocean.json' : 'ocean-soak.json', RESULTS), text)
}
