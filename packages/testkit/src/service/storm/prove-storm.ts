import { type StormName, storm } from './storm.js'
import { stormedService } from './stormed-service.js'

/** The program that runs the service, and options of the service; by default this program, without options. */
const NODE = process.env.STORM_NODE ?? process.execPath
const FLAGS = process.env.STORM_FLAGS?.split(' ') ?? []

/**
 * A storm of `clients` against its own service, in its own process. The variables STORM_NODE and STORM_FLAGS choose another version of Node.js and
 * more processes, or encrypts: `STORM_FLAGS='--processes 2 encrypted'`.
 */
export async function proveStorm(name: StormName, seed: number, clients: number): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    const stormed = await stormedService(
      { after: (end: () => unknown) => void ends.push(end) } as Parameters<typeof stormedService>[0],
      NODE,
      ...FLAGS,
    )
    await storm(stormed, name, seed, clients)
    await stormed.isAsBefore()
  } finally {
    for (const end of ends) await end()
  }
}
