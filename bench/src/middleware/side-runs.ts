import { summaryOf } from 'sluicegate-testkit/samples.js'
import type { Walk } from '../key-row.js'
import { clientAddresses, exchange, exchangeWalk, LightSocket } from './exchange.js'
import { type MiddlewareSetting, SIDES, type Side, sideName } from './middleware-settings.js'
import { SITES } from './site.js'

/** How many requests were made, and how many of them passed. */
export interface Counted {
  readonly requests: number
  readonly allowed: number
}

/** What was found of each side at the same time. */
export type SideRun<Found extends Counted> = Readonly<Record<Side, Found>>

/** All runs of a setting. */
export interface SettingRuns<Found extends Counted> {
  readonly setting: MiddlewareSetting
  readonly runs: readonly SideRun<Found>[]
}

/** The run, unless a side answered otherwise than the setting says: that measured something else. */
export function checkedRun<Found extends Counted>({ framework, outcome }: MiddlewareSetting, run: SideRun<Found>): SideRun<Found> {
  for (const side of SIDES) {
    const { requests, allowed } = run[side]
    if (requests > 0 && allowed === (side === 'unlimited' || outcome === 'allow' ? requests : 0)) continue
    throw new Error(`${sideName(side, framework)}: ${allowed} of ${requests} requests were allowed, where all were to be: ${outcome}`)
  }
  return run
}

/** For each side what `of` makes of it. */
export async function forEachSide<Value>(of: (side: Side) => Promise<Value>): Promise<Record<Side, Value>> {
  return { unlimited: await of('unlimited'), sluicegate: await of('sluicegate'), rival: await of('rival') }
}

/**
 * What each side takes, out of blocks that ran in turn: that of `unlimited` by its median, and the others by the median of their ratios to the
 * block of `unlimited` beside them. How fast a virtual machine is changes from second to second, and both blocks of a ratio share it.
 *
 * @param blocks what each took, the same in number.
 */
export function sideTimes(blocks: Readonly<Record<Side, readonly number[]>>): Record<Side, number> {
  const alone = summaryOf(blocks.unlimited).median
  const [unlimited, sluicegate, rival] = SIDES.map((side) => {
    const ratios = blocks[side].map((took, block) => took / (blocks.unlimited[block] as number))
    return alone * summaryOf(ratios).median
  }) as [number, number, number]
  return { unlimited, sluicegate, rival }
}

/** Requests to the app of each side, without sockets. Every client was there once: a limiter that denies has nothing left for it. */
export async function sideWalks({ framework, options, outcome, clients }: MiddlewareSetting): Promise<Record<Side, Walk>> {
  const connections = clientAddresses(clients).map((address) => new LightSocket(address))
  return forEachSide(async (side) => {
    const site = await SITES[framework]({ side, options, outcome, behindProxy: false })
    for (const connection of connections) await exchange(site, connection)
    return exchangeWalk(site, connections)
  })
}
