/** TensorFlow.js in plain JavaScript: works everywhere, slowly. */
import '@tensorflow/tfjs-backend-cpu'
import * as tf from '@tensorflow/tfjs-core'

export const backend = { name: 'cpu', bytes: () => tf.memory().numBytes }
