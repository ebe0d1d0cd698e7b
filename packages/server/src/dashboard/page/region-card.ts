import type { RegionalPolicy, RegionSample } from '../sample.js'
import { byId, made } from './element.js'
import { count, rate } from './figures.js'

/** Who holds what of budgets whose home is another store. */
export function showRegion(region: RegionSample | undefined): void {
  byId('region').hidden = region === undefined
  if (region === undefined) return
  const { name, isHomeOut, policies } = region
  byId('region-name').textContent = name
  const home = byId('region-home')
  home.className = isHomeOut ? 'badge denied' : 'badge allowed'
  home.textContent = isHomeOut ? 'home out: the region goes on with its share' : 'home reachable'
  byId('region-policies').replaceChildren(...policies.map(row))
}

function row({ name, mode, why, isHomeOut, renewedPerSecond, charged, regions, share }: RegionalPolicy): HTMLElement {
  const owed = charged === 0 ? '' : `, ${count(charged)} charged afterwards`
  const part = `share ${rate(100 * share)}%`
  return made(
    'li',
    'state regional',
    made('b', 'state-name', name),
    made('span', isHomeOut ? 'badge denied' : 'badge allowed', isHomeOut ? `${mode}, home out` : mode),
    made('span', 'quiet', why ?? 'holds tokens ahead of need'),
    made('span', 'left', made('b', '', rate(renewedPerSecond)), ` tokens renewed a second${owed}`),
    made('span', 'quiet', regions === 0 ? part : `${count(regions)} ${regions === 1 ? 'region' : 'regions'}, ${part}`),
  )
}
