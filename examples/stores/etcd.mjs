// A store in etcd 3.4 or newer, by its JSON gateway. It has no time, so the clock is this machine's: all processes need synchronized clocks.
// etcd keeps old revisions: start it with --auto-compaction-retention.

/** @returns {Required<Pick<import('sluicegate/store').CasStore, 'name' | 'read' | 'readAll' | 'swap' | 'swapAll'>>} */
export function etcdStore(url = 'http://127.0.0.1:2379') {
  const leases = new Map()
  const call = async (path, body) => {
    const response = await fetch(`${url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${await response.text()}`)
    return response.json()
  }
  const base64 = (bytes) => Buffer.from(bytes).toString('base64')
  const rangeOf = (key) => ({ requestRange: { key: base64(key) } })
  const stateOf = ({ response_range: { kvs: [kv] = [] } }) => ({
    value: kv && new Uint8Array(Buffer.from(kv.value ?? '', 'base64')),
    version: kv?.mod_revision,
    nowUs: Date.now() * 1000,
  })

  const readAll = async (keys) => {
    const { responses } = await call('kv/txn', { success: keys.map(rangeOf) })
    return responses.map(stateOf)
  }

  /** A lease of at least this long. It serves many keys: it is granted for twice as long, and used in its first half. */
  const leaseFor = async (ttlMs) => {
    const seconds = 2 ** Math.ceil(Math.log2(Math.max(1, ttlMs / 1000)))
    const known = leases.get(seconds)
    if (known !== undefined && performance.now() < known.untilMs) return known.id
    const lease = { untilMs: performance.now() + seconds * 1000, id: call('lease/grant', { TTL: 2 * seconds + 1 }).then(({ ID }) => ID) }
    leases.set(seconds, lease)
    return lease.id.catch((error) => {
      leases.delete(seconds)
      throw error
    })
  }

  const swapAll = async (swaps) => {
    const ids = await Promise.all(swaps.map(({ ttlMs }) => leaseFor(ttlMs)))
    const compare = swaps.map(({ key, version = 0 }) => ({ target: 'MOD', result: 'EQUAL', key: base64(key), modRevision: version }))
    const success = swaps.map(({ key, value }, i) => ({ requestPut: { key: base64(key), value: base64(value), lease: ids[i] } }))
    const failure = swaps.map(({ key }) => rangeOf(key))
    const {
      succeeded = false,
      responses,
      header,
    } = await call('kv/txn', { compare, success, failure }).catch((error) => {
      leases.clear()
      throw error
    })
    if (!succeeded) return { swapped: false, states: responses.map(stateOf) }
    return { swapped: true, states: swaps.map(({ value }) => ({ value, version: header.revision, nowUs: Date.now() * 1000 })) }
  }

  return {
    name: 'etcd',
    read: async (key) => (await readAll([key]))[0],
    readAll,
    swap: async (swap) => {
      const { swapped, states } = await swapAll([swap])
      return { swapped, state: states[0] }
    },
    swapAll,
  }
}
