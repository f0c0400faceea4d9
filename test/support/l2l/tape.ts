/**
 * Gradients by TensorFlow.js's tape, as a reference for hand-written VJPs. tfjs-core imports its gradient functions
 * without file extensions, which Node.js resolves only with a hook. They register themselves in the global engine.
 */
import { register } from 'node:module'
import * as tf from '#tfjs'

const hook = `
  const inside = /\\/tfjs-core\\/dist\\/(?!tf-core)/
  export async function resolve(specifier, context, next) {
    if (!specifier.startsWith('.') || !inside.test(context.parentURL ?? '')) return next(specifier, context)
    try {
      return await next(specifier + '.js', context)
    } catch {
      return next(specifier + '/index.js', context)
    }
  }
  export function load(url, context, next) {
    return inside.test(url) ? next(url, { ...context, format: 'module' }) : next(url, context)
  }
`
register(`data:text/javascript,${encodeURIComponent(hook)}`)
await import('@tensorflow/tfjs-core/dist/register_all_gradients.js')

/** Gradients of Σ f(…args)·weighting with respect to each argument. */
export function tapeGradients(
  compute: (...given: tf.Tensor[]) => tf.Tensor,
  given: readonly tf.Tensor[],
  weighting: tf.Tensor
): tf.Tensor[] {
  return tf.grads((...at: tf.Tensor[]) => tf.sum(tf.mul(compute(...at), weighting)))([...given])
}
