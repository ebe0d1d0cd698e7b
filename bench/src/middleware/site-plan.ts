import type { RequestListener } from 'node:http'
import type { MiddlewareSetting, Side } from './middleware-settings.js'

/** What an app is to be like. */
export interface SitePlan extends Pick<MiddlewareSetting, 'options' | 'outcome'> {
  readonly side: Side
  /** Whether clients are known by the header that a proxy of one's own writes, and not by their socket. */
  readonly behindProxy: boolean
}

/** An app with one route, which answers `ok`, and in front of it the limiter. */
export type SiteMaker = (plan: SitePlan) => Promise<RequestListener>
