import { layerSuite } from 'sluicegate-testkit/suites/layer-suite.js'
import { listAndShadowSuite } from 'sluicegate-testkit/suites/list-and-shadow-suite.js'
import { createLimiter } from '../create-limiter.js'

for (const suite of [layerSuite, listAndShadowSuite]) suite({ name: 'memory', carries: true, make: createLimiter })
