// A process with an app on a port of loopback. Answers `port`, and `cpu` with the microseconds of processor time that it has used.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerLines } from '../line-process.js'
import type { Framework, SitePlan } from './middleware-settings.js'
import { SITES } from './site.js'

/** The job of such a process. */
export interface SiteJob {
  readonly framework: Framework
  readonly plan: SitePlan
}

const { framework, plan } = JSON.parse(process.argv[2] ?? '') as SiteJob
const server = createServer(await SITES[framework](plan))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
await answerLines((line) => {
  const { user, system } = process.cpuUsage()
  return line === 'port' ? (server.address() as AddressInfo).port : user + system
})
