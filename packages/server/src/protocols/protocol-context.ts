import type { ClientBounds, Config } from 'sluicegate-config/config.js'
import type { TlsConfig } from 'sluicegate-config/tls.js'
import type { Access } from '../access.js'
import type { Engine } from '../engine/engine.js'
import type { RateLimits } from '../envoy/rate-limits.js'
import type { Log } from '../log.js'
import type { QuotaService } from '../quota/quota-service.js'
import type { CallTracing } from './call-tracing.js'
import type { Guard } from './guard.js'

/** What the server of a protocol is made with. */
export interface ProtocolContext {
  readonly engine: Engine
  /** Decides by the files in the form of Envoy. */
  readonly limits: RateLimits
  /** Splits budgets among data planes that decide by themselves. Undefined in a worker: each would hand out the whole budget. */
  readonly quotas: QuotaService | undefined
  readonly access: Access
  readonly config: Config
  readonly clients: ClientBounds
  /** Undefined: without encryption, as always over a Unix socket. */
  readonly tls: TlsConfig | undefined
  readonly log: Log
  /** The door of its events. */
  readonly guard: Guard
  /** Undefined: calls are not followed. */
  readonly tracing: CallTracing | undefined
}
