import { test } from 'node:test'
import { storeConformance } from 'sluicegate/store-testing'

// For Deno: the store of examples/stores/deno-kv.mjs by the conformance kit, on a file.

interface WithKv {
  makeTempDirSync(): string
  openKv(file: string): Promise<object>
}

type Connected = Parameters<typeof storeConformance>[0]['connect']

const { Deno } = globalThis as unknown as { Deno: WithKv }
const store = new URL('../../../../examples/stores/deno-kv.mjs', import.meta.url).href
const { denoKvStore } = (await import(store)) as { denoKvStore(kv: object): ReturnType<Connected> }

const file = `${Deno.makeTempDirSync()}/kv.db`
storeConformance({ test, connect: async () => denoKvStore(await Deno.openKv(file)) })
