// What users of every adapter name: what a denial tells their functions, and the shape of a limiter of their own.

export type { Denial } from './denial.js'
export type { MiddlewareLimiter as EdgeLimiter } from './middleware-options.js'
