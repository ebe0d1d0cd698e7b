import { after } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { MEMORY_STORE } from 'sluicegate-testkit/twins/limiter-calls.js'
import { LimiterHost } from 'sluicegate-testkit/twins/synchronous-limiter.js'

const host = new LimiterHost(MEMORY_STORE)
after(() => host.stop())

conformanceOverStore('a store', host, { share: shortOrLong(0.005, 0.01), keysShare: shortOrLong(0.005, 0.01) })
