/*
 * product.h - what this shop sells, and the three answers to "is there one?".
 */
#ifndef PRODUCT_H
#define PRODUCT_H

enum answer {
    ABSENT,
    PRESENT,
    UNKNOWN /* whoever was asked did not answer: not the same as absent */
};

struct product {
    char text[48];
};

#endif
