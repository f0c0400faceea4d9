/** Preloaded into a real peer: its learner thread creates a hostile node of the simulator in place of an `AdmbNode`. */
import { register } from 'node:module'

register(new URL('resolve.js', import.meta.url))
