import { createLimiter } from '../create-limiter.js'
import { layerSuite } from '../testing/layer-suite.js'
import { listAndShadowSuite } from '../testing/list-and-shadow-suite.js'

for (const suite of [layerSuite, listAndShadowSuite]) suite({ name: 'memory', make: createLimiter })
