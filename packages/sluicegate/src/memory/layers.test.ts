import { createLimiter } from '../create-limiter.js'
import { layerSuite } from '../testing/layer-suite.js'

layerSuite({ name: 'memory', make: createLimiter })
