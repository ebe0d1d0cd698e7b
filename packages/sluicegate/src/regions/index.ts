export { region } from './region.js'
