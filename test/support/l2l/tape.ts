/**
 * Gradients by TensorFlow.js's own tape, to check hand-written ones against. Its gradient functions lie in tfjs-core as ES
 * modules without file endings, which Node takes only with a hook; they register themselves in the global engine.
 */
import { register } from 'node:module'
import * as tf from '@tensorflow/tfjs-core'

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

/** Gradients of Σ f(…arguments)·weighting at each argument. */
export function tapeGradients(
  compute: (...given: tf.Tensor[]) => tf.Tensor,
  given: readonly tf.Tensor[],
  weighting: tf.Tensor
): tf.Tensor[] {
  return tf.grads((...at: tf.Tensor[]) => tf.sum(tf.mul(compute(...at), weighting)))([...given])
}
