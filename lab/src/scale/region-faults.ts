import { type AuthorityRules, SOUND_AUTHORITY } from './region-authority.js'
import { type RegionRules, SOUND_REGION } from './region-store.js'

/** The rules that regions and their authority go by. */
export interface FaultyRegions {
  readonly name: string
  readonly authority: AuthorityRules
  readonly region: RegionRules
}

export const SOUND_REGIONS: FaultyRegions = { name: 'sound', authority: SOUND_AUTHORITY, region: SOUND_REGION }

/** One rule broken each: histories have to show it. */
export const FAULTY_REGIONS: readonly FaultyRegions[] = [
  {
    ...SOUND_REGIONS,
    name: 'the authority forgets grants before the last one',
    authority: { ...SOUND_AUTHORITY, remembered: (outstanding) => outstanding.slice(-1) },
  },
  {
    ...SOUND_REGIONS,
    name: 'the authority forgets grants of regions',
    authority: { ...SOUND_AUTHORITY, remembered: () => [] },
  },
  { ...SOUND_REGIONS, name: 'a restarted authority grants at once', authority: { ...SOUND_AUTHORITY, quietUs: () => 0 } },
  {
    ...SOUND_REGIONS,
    name: 'a term counts from the arrival of the grant',
    region: { ...SOUND_REGION, endsFromUs: (_sentUs, arrivedUs) => arrivedUs },
  },
  { ...SOUND_REGIONS, name: 'clocks are taken to be equally fast', region: { ...SOUND_REGION, termUs: (us) => us + us / 1000 } },
  {
    ...SOUND_REGIONS,
    name: 'an earlier grant takes the place of a later one',
    region: { ...SOUND_REGION, isLater: () => true },
  },
  {
    ...SOUND_REGIONS,
    name: 'regions keep no room for leases',
    region: { ...SOUND_REGION, burstOf: ({ burst, regions }) => Math.floor(burst / regions) },
  },
]
