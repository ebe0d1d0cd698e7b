import { fork } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { measuredWhere } from 'sluicegate-commands/load/machine-text.js'
import { FaultProxy, RedisProcess } from 'sluicegate-testkit'
import { machineUs } from '../lab-load.js'
import { type MeasuredWay, regionFigures } from './region-figures.js'
import type { RegionJob, RegionRecord } from './region-process.js'
import { CHECKED, DELAYS_MS, PHASES, type Phase } from './region-traffic.js'
import { REGIONS, WAYS, type WayName } from './region-ways.js'
import { comparedTable, filledRegions, regionsPlot, type SavedRegions, simulationText } from './regions-page.js'
import { simulated } from './simulated-regions.js'

const USAGE = `npm run lab:regions -- [--render | --check] [WAY]...

Sends the same traffic in three regions under each way of sharing a limit, through links of 40, 80 and 150 ms each way, lets a region
and the far store die, and writes the table and the plot of docs/regions.md. --check measures again only what the simulation is compared with. With a WAY it runs that one and only prints: ${Object.keys(WAYS).join(', ')}.`

const PAGE = new URL('../../../docs/regions.md', import.meta.url)
const PLOT = new URL('../../../docs/plots/regions.svg', import.meta.url)
const SAVED = new URL('../../results/regions.json', import.meta.url)
const DEAD = 0
const SEED = 42

const names = process.argv.slice(2)
const isWay = (name: string): name is WayName => Object.hasOwn(WAYS, name)
if (names.length === 1 && names[0] === '--render') publish(JSON.parse(readFileSync(SAVED, 'utf8')) as SavedRegions)
else if (names.length === 1 && names[0] === '--check')
  save({ ...(JSON.parse(readFileSync(SAVED, 'utf8')) as SavedRegions), ...(await checkedRuns()) })
else if (names.every(isWay)) await compare(names.length === 0 ? (Object.keys(WAYS) as WayName[]) : names)
else {
  console.error(USAGE)
  process.exitCode = names.includes('--help') ? 0 : 2
}

async function compare(ways: readonly WayName[]): Promise<void> {
  const where = measuredWhere()
  const found: MeasuredWay[] = []
  for (const way of ways) {
    found.push(await measured(way, PHASES))
    console.log(comparedTable(found.slice(-1)))
  }
  if (ways.length < Object.keys(WAYS).length) return
  save({ where, seed: SEED, found, ...(await checkedRuns()) })
}

/** The same traffic in the lab and in the simulation. */
async function checkedRuns(): Promise<Pick<SavedRegions, 'checked' | 'simulated'>> {
  return { checked: (await measured('home', CHECKED)).phases, simulated: await simulated(DELAYS_MS, SEED) }
}

function save(saved: SavedRegions): void {
  console.log(simulationText(saved))
  mkdirSync(new URL('.', SAVED), { recursive: true })
  const lines = saved.found.map((each) => ` ${JSON.stringify(each)}`).join(',\n')
  writeFileSync(SAVED, `${JSON.stringify({ ...saved, found: [] }).replace('"found":[]', () => `"found":[\n${lines}\n]`)}\n`)
  publish(saved)
}

function publish(saved: SavedRegions): void {
  writeFileSync(PLOT, regionsPlot(saved))
  writeFileSync(PAGE, filledRegions(readFileSync(PAGE, 'utf8'), saved))
}

/** One way under all of the traffic: a process for each region, and this one passes on and delays what goes to the far store. */
async function measured(way: WayName, phases: readonly Phase[]): Promise<MeasuredWay> {
  const far = await RedisProcess.start()
  const stores = await Promise.all(DELAYS_MS.map(() => RedisProcess.start()))
  const links = await Promise.all(DELAYS_MS.map(() => FaultProxy.before(far)))
  const across = (i: number): void => links[i]?.set({ kind: 'latency', delayMs: DELAYS_MS[i] ?? 0, jitterMs: (DELAYS_MS[i] ?? 0) / 10 })
  for (const i of DELAYS_MS.keys()) across(i)
  const children = DELAYS_MS.map(() => fork(fileURLToPath(new URL('region-process.js', import.meta.url)), [], { timeout: 240_000 }))
  try {
    const ready = children.map((child) => message(child))
    for (const [index, child] of children.entries()) {
      const [store, link] = [stores[index] as RedisProcess, links[index] as FaultProxy]
      child.send({ way, phases, index, region: `r${index}`, store: store.url, far: link.url, seed: SEED + index } satisfies RegionJob)
    }
    await Promise.all(ready)
    const records = children.map((child) => message(child) as Promise<RegionRecord>)
    const startUs = machineUs() + 100_000
    for (const child of children) child.send(startUs)
    const pieces = (): number => links.reduce((sum, link) => sum + link.pieces, 0)
    const messages: number[] = []
    let atUs = startUs
    for (const { seconds, dead } of phases) {
      const before = pieces()
      if (dead === 'home') for (const link of links) link.set({ kind: 'black-hole' })
      if (dead === 'region') links[DEAD]?.set({ kind: 'black-hole' })
      atUs += seconds * 1_000_000
      await new Promise((resolve) => setTimeout(resolve, (atUs - machineUs()) / 1_000))
      if (dead === 'region') across(DEAD)
      messages.push((pieces() - before) / seconds / REGIONS)
    }
    const byRegion = await Promise.all(records)
    return regionFigures(way, phases, byRegion, messages, startUs)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(links.map((link) => link.stop()))
    await Promise.all([far, ...stores].map((server) => server.stop()))
  }
}

function message(child: ReturnType<typeof fork>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`a region ended: ${code}`)))
  })
}
