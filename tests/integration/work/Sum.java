// SPDX-License-Identifier: Apache-2.0
import java.util.stream.IntStream;

public class Sum {
	public static void main(String[] args) throws InterruptedException {
		Thread thread = new Thread(() -> System.out.println(IntStream.range(0, 1000).parallel().sum()));

		thread.start();
		thread.join();
	}
}
