import type { TestContext } from 'node:test'
import type { Limits, RunningApp } from './harness.js'
import type { Site } from './site.js'

/** An app that ends with its test. */
export type StartApp<Request> = (t: TestContext, limits: Limits<Request>) => Promise<RunningApp & { readonly site: Site }>
