/** `npm run install-tensorflow [-- gpu]`: installs native kernels for the device `tensorflow` into the user's cache. */
import { installTensorflow } from '../src/device/index.js'

const [kind = 'cpu'] = process.argv.slice(2)
if (kind !== 'cpu' && kind !== 'gpu') {
  process.stderr.write(`install-tensorflow: unknown kind '${kind}'; expected cpu or gpu\n`)
  process.exitCode = 2
} else {
  try {
    const folder = await installTensorflow({ kind, log: line => process.stdout.write(`${line}\n`) })
    process.stdout.write(`installed in ${folder}\n`)
  } catch (error) {
    process.stderr.write(`install-tensorflow: ${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
