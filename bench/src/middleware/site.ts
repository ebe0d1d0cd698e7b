import type { Framework } from './middleware-setting.js'
import type { SiteMaker } from './site-plan.js'
import { expressSite } from './sites/express.js'
import { fastifySite } from './sites/fastify.js'
import { honoSite } from './sites/hono.js'
import { koaSite } from './sites/koa.js'

export const SITES: Readonly<Record<Framework, SiteMaker>> = { express: expressSite, fastify: fastifySite, hono: honoSite, koa: koaSite }
