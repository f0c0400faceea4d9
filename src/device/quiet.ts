/** TensorFlow.js warns of itself: greetings, and kernels that are registered once more. Nobody can do anything about that. */
import * as tf from '@tensorflow/tfjs-core'

export function withoutWarnings(work: () => void): void {
  const wasProduction = tf.env().getBool('PROD')
  tf.env().set('PROD', true)
  try {
    work()
  } finally {
    tf.env().set('PROD', wasProduction)
  }
}
