/**
 * The operations of TensorFlow.js that the layers of networks use, in plain JavaScript, so that a tab learns networks without loading
 * TensorFlow.js: `#tfjs` in `package.json`. Names, arguments and results are those of TensorFlow.js. Tensors do not change, and the
 * garbage collector frees them. `bool` is `int32` here.
 */

export {
  abs,
  add,
  concat,
  div,
  equal,
  exp,
  gather,
  greater,
  mul,
  neg,
  oneHot,
  pad,
  relu,
  reverse,
  rsqrt,
  scatterND,
  sigmoid,
  slice,
  square,
  stack,
  step,
  sub,
  tanh,
  tile,
  transpose
} from './elementwise.js'
export { conv2d, matMul, maxPool } from './products.js'
export { argMax, cumsum, logSoftmax, mean, softmax, sum } from './reductions.js'
export {
  cast,
  clone,
  type DataType,
  dispose,
  fill,
  keep,
  ones,
  reshape,
  Tensor,
  tensor,
  tensor2d,
  tensor3d,
  tidy,
  zeros
} from './tensor.js'
