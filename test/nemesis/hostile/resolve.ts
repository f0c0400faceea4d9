/** Module hook: what creates the node of a learner imports `AdmbNode` from `node.ts` of this folder. */
import type { ResolveHook } from 'node:module'

const HOSTILE = new URL('node.js', import.meta.url).href

export const resolve: ResolveHook = (specifier, context, next) =>
  specifier === '../admb/index.js' && context.parentURL?.endsWith('/src/peer/learner-node.js')
    ? { url: HOSTILE, shortCircuit: true }
    : next(specifier, context)
