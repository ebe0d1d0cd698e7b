import { setTimeout as rest } from 'node:timers/promises'
import type { Random } from 'sluicegate-testkit'
import { around, type FaultMarker } from '../scenarios.js'
import type { Ocean, OceanLoad, OceanPolicy, OceanRegion } from './ocean.js'

/** What a scenario works on. */
export interface OceanRun {
  readonly ocean: Ocean
  readonly load: OceanLoad
  readonly random: Random
  readonly fault: FaultMarker
}

/** What happens to regions during a run of load. */
export interface OceanScenario {
  readonly name: string
  /** Default: either of them. */
  readonly policy?: OceanPolicy
  /** Requests over the limit; default 2. */
  readonly demand?: number
  /** The highest limit that is in force at some time. */
  readonly highestLimit?: number
  /** Replacements of the home, each of which may forget what was not replicated. */
  readonly failovers?: number
  run(run: OceanRun): Promise<void>
}

/** Of the demand, by region. */
export const PARTS = [0.5, 0.3, 0.2] as const
const SLOWER = 4
const LOST_SHARE = 0.05
const SHIFTED = 90
/** A step of a clock: whole windows, so that windows of the home begin when those of the machine do. */
const STEP_S = 120

export const OCEAN_SCENARIOS: readonly OceanScenario[] = [
  { name: 'ocean: steady', run: async () => rest(8_000) },
  {
    name: 'ocean: shift',
    policy: 'bucket',
    demand: 0.9,
    run: async ({ ocean, load, fault }) => {
      for (const region of [0, ocean.regions.length - 1]) {
        await rest(3_000)
        await fault(`all demand in ${ocean.regions[region]?.name}`, () =>
          load.demand(ocean.regions.map((_, i) => (i === region ? SHIFTED : 0))),
        )
        await rest(3_000)
      }
    },
  },
  {
    name: 'ocean: partition of a region',
    run: ({ ocean, random, fault }) => {
      const region = random.pick(ocean.regions)
      return around(2_000, 4_000, () => fault(`${region.name} is cut off`, () => whileCut([region], 'black-hole', 5_000)))
    },
  },
  {
    name: 'ocean: home killed',
    run: ({ ocean, fault }) => around(2_000, 4_000, () => fault('kill -9 of the home', () => killed(ocean, 4_000))),
  },
  {
    name: 'ocean: replica promoted',
    failovers: 1,
    run: async ({ ocean, fault }) => {
      await rest(2_000)
      await fault('kill -9 of the home', () => ocean.home.promote())
      await rest(3_000)
      await ocean.home.rejoin()
      await rest(1_000)
    },
  },
  {
    name: 'ocean: slow ocean',
    run: ({ ocean, fault }) =>
      around(2_000, 4_000, () => fault(`delays x ${SLOWER}`, () => whileAcross(ocean.regions, { times: SLOWER }, 5_000))),
  },
  {
    name: 'ocean: lossy ocean',
    run: ({ ocean, fault }) =>
      around(2_000, 3_000, () => fault('answers are lost', () => whileAcross(ocean.regions, { lostShare: LOST_SHARE }, 5_000))),
  },
  {
    name: 'ocean: rolling change of the policy',
    policy: 'bucket',
    highestLimit: 200,
    run: async ({ ocean, fault }) => {
      for (const limit of [200, 100]) {
        await rest(1_500)
        for (const region of ocean.regions) {
          await fault(`${limit}/s in ${region.name}`, async () => {
            region.change(limit)
            await rest(1_200)
          })
        }
      }
      await rest(1_500)
    },
  },
  {
    name: 'ocean: clock steps',
    policy: 'bucket',
    run: async ({ ocean, random, fault }) => {
      const region = random.pick(ocean.regions)
      await rest(2_000)
      for (const [who, server] of [[region.name, region] as const, ['the home', ocean.home] as const]) {
        for (const byS of [STEP_S, -STEP_S]) {
          await fault(`clock of ${who} ${byS > 0 ? '+' : ''}${byS} s`, async () => {
            server.stepClock(byS)
            await rest(3_000)
          })
        }
      }
      // Set back, the home denies at most until a budget would be full: for 10 s.
      await rest(10_000)
    },
  },
  {
    name: 'ocean: random faults',
    run: async ({ ocean, random, fault }) => {
      await rest(1_500)
      // Two at a time, so that one meets the other.
      const some = (): Promise<void> => randomFault(ocean, random, fault)
      for (let i = 0; i < 3; i++) {
        await Promise.all([some(), rest(random.integer(0, 1_500)).then(some)])
        await rest(random.integer(500, 2_000))
      }
      for (const region of ocean.regions) region.across()
      await rest(3_000)
    },
  },
]

function randomFault(ocean: Ocean, random: Random, fault: FaultMarker): Promise<void> {
  const region = random.pick(ocean.regions)
  const ms = random.integer(500, 4_000)
  return random.pick([
    () => fault(`${region.name} is cut off`, () => whileCut([region], random.pick(['black-hole', 'cut', 'half-open']), ms)),
    () => fault('the home is cut off', () => whileCut(ocean.regions, 'black-hole', ms)),
    () => fault(`${region.name} is far`, () => whileAcross([region], { times: random.integer(2, 6) }, ms)),
    () => fault('answers are lost', () => whileAcross(ocean.regions, { lostShare: LOST_SHARE }, ms)),
    () => fault('the home stands still', () => paused(ocean, ms)),
    () => fault(`the clock of ${region.name} steps`, async () => region.stepClock(random.integer(-STEP_S, STEP_S))),
    () => fault('the clock of the home steps', async () => ocean.home.stepClock(random.pick([STEP_S, -STEP_S]))),
  ])()
}

async function whileCut(regions: readonly OceanRegion[], kind: 'black-hole' | 'cut' | 'half-open', ms: number): Promise<void> {
  for (const { link } of regions) link.set({ kind })
  await rest(ms)
  for (const region of regions) region.across()
}

async function whileAcross(regions: readonly OceanRegion[], how: { times?: number; lostShare?: number }, ms: number): Promise<void> {
  for (const region of regions) region.across(how)
  await rest(ms)
  for (const region of regions) region.across()
}

async function killed({ home: { primary } }: Ocean, ms: number): Promise<void> {
  await primary.kill()
  await rest(ms)
  await primary.start()
}

async function paused({ home: { primary } }: Ocean, ms: number): Promise<void> {
  primary.pause()
  await rest(ms)
  primary.resume()
}
