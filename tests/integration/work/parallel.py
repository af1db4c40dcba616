# SPDX-License-Identifier: Apache-2.0
"""What Python's ways to use several processors need: /dev/shm, semaphores, pipes, sockets, fork and exec."""
import concurrent.futures
import multiprocessing
import multiprocessing.shared_memory


def square(x):
    return x * x


def count(gate, total, lock):
    with gate:
        for _ in range(1000):
            with lock:
                total.value += 1


def main():
    with multiprocessing.Pool(8) as pool:
        print(sum(pool.map(square, range(1000))))
    gate, lock, total = multiprocessing.BoundedSemaphore(2), multiprocessing.Lock(), multiprocessing.Value("i", 0)
    jobs = [multiprocessing.Process(target=count, args=(gate, total, lock)) for _ in range(6)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    print(total.value)
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 20)
    block.buf[:3] = b"abc"
    same = multiprocessing.shared_memory.SharedMemory(block.name)
    print(bytes(same.buf[:3]).decode())
    same.close()
    block.close()
    block.unlink()
    with concurrent.futures.ProcessPoolExecutor(4) as executor:
        print(list(executor.map(square, range(4))))
    with multiprocessing.Manager() as manager:
        print(manager.dict(a=1)["a"])
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        print(pool.map(square, [7]))
    queue = multiprocessing.Queue()
    queue.put("queued")
    print(queue.get())


if __name__ == "__main__":
    main()
